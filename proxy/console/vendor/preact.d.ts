/** The little of Preact's and htm's types that the console uses. */

export interface VNode {
  type: unknown;
  props: Record<string, unknown>;
  key: unknown;
}
export type Node = VNode | string | number | boolean | null | undefined | Node[];
export interface Ref<T> {
  current: T;
}
export interface Context<T> {
  Provider: (props: { value: T; children?: Node }) => VNode;
}
type Update<S> = S | ((previous: S) => S);
type Effect = () => void | (() => void);

export function h(type: unknown, props: object | null, ...children: Node[]): VNode;
export function html(strings: TemplateStringsArray, ...values: unknown[]): VNode;
export function render(node: Node, parent: Element): void;
export function Fragment(props: { children?: Node }): VNode;
export class Component<P = {}, S = {}> {
  constructor(props?: P);
  props: P;
  state: S;
  setState(state: Partial<S>): void;
}
export function createContext<T>(value: T): Context<T>;
export function createRef<T>(): Ref<T | null>;
export function useState<S>(initial: S | (() => S)): [S, (update: Update<S>) => void];
export function useState<S = undefined>(): [S | undefined, (update: Update<S | undefined>) => void];
export function useReducer<S, A>(
  reduce: (state: S, action: A) => S,
  initial: S,
): [S, (action: A) => void];
export function useEffect(effect: Effect, inputs?: unknown[]): void;
export function useLayoutEffect(effect: Effect, inputs?: unknown[]): void;
export function useMemo<T>(make: () => T, inputs: unknown[]): T;
export function useCallback<F extends (...args: any[]) => unknown>(f: F, inputs: unknown[]): F;
export function useRef<T>(initial: T): Ref<T>;
export function useRef<T>(initial: null): Ref<T | null>;
export function useContext<T>(context: Context<T>): T;
export function useErrorBoundary(onError?: (error: any) => void): [any, () => void];
export function useId(): string;
