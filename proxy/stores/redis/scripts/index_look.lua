-- One look at an index.  Lua, because state, mark and postings must be of one moment.
--
-- KEYS: the index's, then those of the terms.  ARGV: most postings of each term, session.
-- Returns { revision, state, mark, then for each term the bytes of all its postings and the newest },
-- or {} where there is none, with revision 0 and the state where that was kept.

local meta = redis.call('HMGET', META, 'revision', 'state')
if not meta[1] then return meta[2] and { '0', meta[2], '' } or {} end
local most = tonumber(ARGV[1]) * POSTING_SIZE
local found = { meta[1], meta[2], redis.call('HGET', MARKS, 's' .. ARGV[2]) or '' }
for i = PARTS + 1, #KEYS do
  local data = most > 0 and redis.call('GETRANGE', KEYS[i], -most, -1) or ''
  found[#found + 1] = redis.call('STRLEN', KEYS[i])
  found[#found + 1] = data
end
return found
