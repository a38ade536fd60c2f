-- Look up terms in an index.  Lua, because state, mark and postings must be of the same moment.
--
-- KEYS: the index's, then those of the terms.  ARGV: the limit of postings of each term, session.
-- Returns { revision, state, mark, then for each term the bytes of all its postings and the newest },
-- or {} if there is no index, or { 0, state, '' } if only the state of a dropped one is left.

local meta = redis.call('HMGET', META, 'revision', 'state')
if not meta[1] then return meta[2] and { '0', meta[2], '' } or {} end
local limit = tonumber(ARGV[1]) * POSTING_SIZE
local found = { meta[1], meta[2], redis.call('HGET', MARKS, 's' .. ARGV[2]) or '' }
for i = PARTS + 1, #KEYS do
  local data = limit > 0 and redis.call('GETRANGE', KEYS[i], -limit, -1) or ''
  found[#found + 1] = redis.call('STRLEN', KEYS[i])
  found[#found + 1] = data
end
return found
