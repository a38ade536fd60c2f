-- What the scripts of an index share.  All its keys carry the owner's hash tag, and behind it ui: for
-- the index of a user, si: for that of a session:
--   meta    hash: revision, state; without a revision there is no index, whatever else is left: the
--           state then is what the next one begins with
--   rows    string: the rows, one behind the other
--   marks   hash: s<session> -> "number seq digest", n<number> -> session, and from the beginning a
--           field without a name, so that it is there when all sessions are forgotten, too
--   vocabulary  string: every term that has a key; it is there before the first one
--   models  set: "size model" of every key of vectors
--   t:<term>        string: postings
--   v:<size>:<model>  string: vectors, each at number * size
-- Every script gets the first five of them as its first keys.

local META, ROWS, MARKS, VOCABULARY, MODELS = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local PARTS = 5
local ROW_SIZE, POSTING_SIZE, TERM_SIZE = 20, 6, 8

local function is_there()
  return redis.call('HEXISTS', META, 'revision') == 1
end

-- By how much (ms) all else outlives the meta: keys of one index never expire under it.
local GRACE = 3600000
