/** The switches of language and colours. */

import { t } from "./i18n/index.js";
import { Menu } from "./parts/menu.js";
import { html } from "./vendor/preact.js";

/** @typedef {import("./app.js").Look} Look */

/** @param {{look: Look, setLook: (look: Partial<Look>) => void}} props */
export function LookMenu({ look, setLook }) {
  const themes = /** @type {const} */ (["auto", "light", "dark"]);
  const now = look.locale === "zh" ? "中" : "EN";
  return html`<${Menu} label=${`${t("look.language")}: ${now}`} class="icon-button"
      actions=${[
        { label: "English", checked: look.locale === "en", onClick: () => setLook({ locale: "en" }) },
        { label: "中文", checked: look.locale === "zh", onClick: () => setLook({ locale: "zh" }) },
      ]}><span aria-hidden="true">${now}</span></${Menu}>
    <${Menu} label=${t("look.theme")} class="icon-button"
      actions=${themes.map((theme) => ({
        label: t(`look.${theme}`),
        checked: look.theme === theme,
        onClick: () => setLook({ theme }),
      }))}><span aria-hidden="true">◐</span></${Menu}>`;
}
