/** One conversation. */

import { html } from "../vendor/preact.js";

/** @param {{session: string, exchange: string | null, message: string | null}} props */
export const Conversation = ({ session }) => html`<h1><bdi>${session}</bdi></h1>`;
