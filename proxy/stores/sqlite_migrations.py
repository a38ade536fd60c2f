"""What is in the SQLite file, version by version."""

from __future__ import annotations

# Rows of a session lie side by side (WITHOUT ROWID, session first): a load reads neighbours.
# entry stands before body, so that reading cards does not read the pages of long bodies.
_VERSION_1 = """
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    session TEXT NOT NULL,
    owner TEXT,
    system BLOB,
    system_tokens INTEGER NOT NULL,
    next INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    last TEXT,
    ttl INTEGER NOT NULL,
    expires_at REAL,
    created_at REAL NOT NULL,
    last_active_at REAL NOT NULL,
    UNIQUE (tenant, session)
);
CREATE INDEX activity ON sessions (tenant, last_active_at, session);
CREATE INDEX activity_of_user ON sessions (tenant, owner, last_active_at, session)
    WHERE owner IS NOT NULL;
CREATE INDEX expiry ON sessions (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE messages (
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    active INTEGER NOT NULL,
    entry BLOB NOT NULL,
    body BLOB NOT NULL,
    wire BLOB,
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;
CREATE INDEX log ON messages (session, turn, seq, tokens) WHERE active = 1;
CREATE TABLE exchanges (
    session INTEGER NOT NULL,
    id TEXT NOT NULL,
    first INTEGER NOT NULL,
    size INTEGER NOT NULL,
    choices INTEGER NOT NULL,
    profile TEXT NOT NULL,
    started_at REAL NOT NULL,
    created_at REAL NOT NULL,
    record BLOB NOT NULL,
    usage BLOB,
    PRIMARY KEY (session, id)
) WITHOUT ROWID;
CREATE INDEX choices ON exchanges (session, first) WHERE choices = 1;
CREATE TABLE windows (
    session INTEGER NOT NULL,
    profile TEXT NOT NULL,
    turn INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (session, profile)
) WITHOUT ROWID;
CREATE TABLE keys (
    session INTEGER NOT NULL,
    key TEXT NOT NULL,
    exchange TEXT NOT NULL,
    created_at REAL NOT NULL,
    PRIMARY KEY (session, key)
) WITHOUT ROWID;
CREATE INDEX key_age ON keys (session, created_at)
"""

# The indexes.  Terms are hashes, so the postings of a message lie far apart: one page for each term
# is what writing costs.  An owner's id is never used again (AUTOINCREMENT): what a dropped index
# leaves behind is found by it (waste) and removed bit by bit.
_VERSION_2 = """
CREATE TABLE owners (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    user TEXT NOT NULL,
    session TEXT NOT NULL,
    revision INTEGER NOT NULL,
    state BLOB NOT NULL,
    passages INTEGER NOT NULL,
    expires_at REAL,
    UNIQUE (tenant, user, session)
);
CREATE INDEX owner_expiry ON owners (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE marks (
    owner INTEGER NOT NULL,
    session TEXT NOT NULL,
    number INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    digest INTEGER NOT NULL,
    PRIMARY KEY (owner, session)
) WITHOUT ROWID;
CREATE INDEX mark_number ON marks (owner, number);
CREATE TABLE passages (
    owner INTEGER NOT NULL,
    number INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (owner, number)
) WITHOUT ROWID;
CREATE TABLE postings (
    owner INTEGER NOT NULL,
    term BLOB NOT NULL,
    block INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (owner, term, block)
) WITHOUT ROWID;
CREATE TABLE vectors (
    owner INTEGER NOT NULL,
    block INTEGER NOT NULL,
    model TEXT NOT NULL,
    size INTEGER NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (owner, block, model, size)
);
CREATE TABLE waste (owner INTEGER PRIMARY KEY)
"""

# A piece of work is found by its due time too; one that is held is due when its lease runs out.
_VERSION_3 = """
ALTER TABLE sessions ADD COLUMN changes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN stalled INTEGER NOT NULL DEFAULT 0;
CREATE TABLE summaries (
    session INTEGER NOT NULL,
    version INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (session, version)
) WITHOUT ROWID;
CREATE TABLE work (
    tenant TEXT NOT NULL,
    session TEXT NOT NULL,
    kind TEXT NOT NULL,
    profile TEXT NOT NULL,
    due REAL NOT NULL,
    asked INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    lease TEXT NOT NULL,
    PRIMARY KEY (tenant, session, kind)
) WITHOUT ROWID;
CREATE INDEX work_due ON work (due)
"""

# Places are packed so that they sort by namespace and key; value stands last, so that looking at
# places does not read the pages of long ones.
_VERSION_4 = """
CREATE TABLE items (
    tenant TEXT NOT NULL,
    user TEXT NOT NULL,
    place BLOB NOT NULL,
    version INTEGER NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    expires_at REAL,
    value BLOB NOT NULL,
    PRIMARY KEY (tenant, user, place)
) WITHOUT ROWID;
CREATE INDEX item_expiry ON items (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE usage (
    tenant TEXT NOT NULL,
    day TEXT NOT NULL,
    feature TEXT NOT NULL,
    calls INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    micro_usd INTEGER NOT NULL,
    PRIMARY KEY (tenant, day, feature)
) WITHOUT ROWID
"""

# What people say of a session, and the marks of what was erased.  A subject is a hash: the id of an
# erased person is not kept.
_VERSION_5 = """
ALTER TABLE sessions ADD COLUMN title TEXT;
ALTER TABLE sessions ADD COLUMN metadata BLOB NOT NULL DEFAULT x'7b7d';
CREATE INDEX exchange_place ON exchanges (session, first);
CREATE TABLE erasures (
    subject BLOB NOT NULL PRIMARY KEY,
    until REAL NOT NULL,
    expires_at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX erasure_expiry ON erasures (expires_at)
"""

MIGRATIONS = (_VERSION_1, _VERSION_2, _VERSION_3, _VERSION_4, _VERSION_5)
"""The script at index N leads from version N to N + 1.  What has been released is never edited."""
