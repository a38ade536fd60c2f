"""How docs/ becomes a site: Sphinx, MyST, Furo.  ``make docs`` writes it to build/docs.

Nothing on it comes from another host: fonts are the system's, and search runs in the page.
"""

from __future__ import annotations

from proxy import __version__

project = "memory-proxy"
version = release = __version__
language = "en"

extensions = ["myst_parser", "docs.inline", "docs.outside", "docs.reference"]
exclude_patterns = ["images/**", "drawings/**"]
myst_heading_anchors = 3
nitpicky = True

html_theme = "furo"
html_title = "memory-proxy"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
