/** A person's profile: the document, its versions, and the way back. */

import { seg, unchanged } from "../api.js";
import { useApp } from "../context.js";
import { n, t } from "../i18n/index.js";
import { Empty, Failed, Loading, Stale } from "../parts/empty.js";
import { isBranch, written } from "../parts/exact.js";
import { Json } from "../parts/json.js";
import { JsonEditor } from "../parts/json_editor.js";
import { usePoll } from "../parts/poll.js";
import { Ago } from "../parts/time.js";
import { html, useState } from "../vendor/preact.js";

const EVERY = 4000;

/** What an edit began with. @typedef {{document: Record<string, unknown>, etag: string | null}} Base */

/** @param {{user: string}} props */
export function Profile({ user }) {
  const [editing, setEditing] = useState(/** @type {Base | null} */ (null));
  const path = `/users/${seg(user)}/profile`;
  const profile = usePoll(path, {}, EVERY);
  const versions = usePoll(`${path}/versions`, { limit: 1000 }, EVERY);
  const refresh = () => (profile.refresh(), versions.refresh());
  if (profile.data === null) {
    return profile.error ? html`<${Failed} error=${profile.error} retry=${refresh} />` : html`<${Loading} />`;
  }
  const { data, etag } = profile;
  const { document, version, updated_at: at } = data;
  const known = Object.keys(document ?? {}).length > 0;
  return html`<div class="profile">
    <${Stale} error=${profile.error ?? versions.error} />
    <section class="card pad">
      <header class="section-head"><h2>${t("profile.now")}</h2>
        ${version > 0 && html`<span class="tag num">${t("profile.version", { version: n(version) })}</span><${Ago} class="muted small" at=${at} />`}
        <button type="button" class="button" onClick=${() => setEditing({ document, etag })}>${t("edit")}</button></header>
      ${known ? html`<${Json} value=${document} open=${3} />` : html`<${Empty} title=${t("profile.none")} />`}
    </section>
    <${Versions} list=${versions.data?.data ?? []} current=${version} etag=${etag} path=${path} changed=${refresh} />
    ${editing && html`<${Editing} path=${path} base=${editing} changed=${refresh} onClose=${() => setEditing(null)} />`}
  </div>`;
}

/** @param {{path: string, base: Base, changed: () => void, onClose: () => void}} props */
function Editing({ path, base: opened, changed, onClose }) {
  const { api, toast } = useApp();
  const [base, setBase] = useState(opened);
  const [theirs, setTheirs] = useState(/** @type {any} */ (undefined));
  const save = async (/** @type {any} */ wanted) => {
    /** @type {Record<string, string>} */
    const headers = { "content-type": "application/json-patch+json" };
    if (base.etag) headers["if-match"] = base.etag;
    try {
      await api.patch(path, changes(base.document, wanted), { headers });
    } catch (error) {
      if (/** @type {any} */ (error).status !== 412) throw error;
      const { data, etag } = await api.get(path);
      setBase({ document: data.document, etag });
      setTheirs(data.document);
      throw error;
    }
    toast(t("memory.changed"), "success");
    changed();
  };
  return html`<${JsonEditor} title=${t("profile.edit")} value=${opened.document} theirs=${theirs} save=${save} onClose=${onClose} />`;
}

/**
 * A JSON Patch from one document to another, by their first level.
 * @param {Record<string, unknown>} from @param {any} to
 */
function changes(from, to) {
  if (!isBranch(to) || Array.isArray(to)) throw new Error(t("json.object"));
  const place = (/** @type {string} */ name) => `/${name.replace(/~/g, "~0").replace(/\//g, "~1")}`;
  const gone = Object.keys(from).filter((name) => !(name in to)).map((name) => ({ op: "remove", path: place(name) }));
  const changed = Object.entries(to).filter(([name, value]) => !Object.hasOwn(from, name) || written(from[name]) !== written(value));
  return [...gone, ...changed.map(([name, value]) => ({ op: "add", path: place(name), value }))];
}

/** @param {{list: any[], current: number, etag: string | null, path: string, changed: () => void}} props `etag`: of the profile as it is shown */
function Versions({ list, current, etag, path, changed }) {
  const { api, confirm, toast, failed } = useApp();
  const back = async (/** @type {any} */ version) => {
    const body = html`<p>${t("profile.back.hint")}</p><${Json} value=${version.document} open=${2} />`;
    const title = t("profile.back.title", { version: n(version.version) });
    if (!(await confirm({ title, body, action: t("profile.back") }))) return;
    await api.post(`${path}/rollback`, { version: version.version }, unchanged({ etag })).then(
      () => toast(t("memory.changed"), "success"),
      (error) => (error.status === 412 ? toast(t("conflict.title"), "error") : failed(error)),
    );
    changed();
  };
  if (list.length === 0) return null;
  return html`<section class="card pad"><header class="section-head"><h2>${t("profile.versions")}</h2></header>
    <ol class="versions" reversed>${[...list].reverse().map((version) => html`<li key=${version.version}>
      <details><summary><span class="num">${t("profile.version", { version: n(version.version) })}</span>
        <span class="tag">${version.rolled_back_to === null ? t(`origin.${version.origin}`) : t("profile.rolled", { version: n(version.rolled_back_to) })}</span><${Ago} class="muted small" at=${version.created_at} /></summary>
        <${Json} value=${version.patch ?? version.document} open=${2} />
        ${version.version !== current && html`<button type="button" class="button" onClick=${() => back(version)}>${t("profile.back")}</button>`}
      </details></li>`)}</ol>
  </section>`;
}
