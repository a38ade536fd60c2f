/** Preact with what this screen needs besides: parts that are drawn again only for other properties. */

import { Component, html } from "../vendor/preact.js";

export * from "../vendor/preact.js";

/**
 * @template P
 * @param {(props: P) => any} draw
 */
export function memo(draw) {
  return class extends Component {
    /** @param {any} next */
    shouldComponentUpdate(next) {
      const now = /** @type {any} */ (this.props);
      return Object.keys({ ...now, ...next }).some((name) => now[name] !== next[name]);
    }

    /** @param {any} props */
    render(props) {
      return html`<${draw} ...${props} />`;
    }
  };
}
