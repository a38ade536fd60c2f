/** Preact and its hooks with htm: what the console's modules import. */

import { h } from "./preact.module.js";
import htm from "./htm.module.js";

export { h, render, Fragment, Component, createContext, createRef } from "./preact.module.js";
export {
  useState,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useCallback,
  useReducer,
  useContext,
  useErrorBoundary,
  useId,
} from "./hooks.module.js";

/** Tagged template: markup with values in, virtual nodes out; text is always text. */
export const html = htm.bind(h);
