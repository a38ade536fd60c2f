-- Namespaces that have items, by the first place of each.  Lua, because each step depends on the one
-- before.
--
-- ARGV: where to begin after, the end of the range, the limit of namespaces, the limit of steps, now.
-- Returns { where to continue after, or false at the end; then a place in each namespace }, or false
-- if the list of places must be rebuilt first.

if unlisted() then return false end
local at, limit, now = ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[5])
local found = { false }
for _ = 1, tonumber(ARGV[4]) do
  if #found > limit then break end
  local place = redis.call('ZRANGEBYLEX', PLACES, '(' .. at, ARGV[2], 'LIMIT', 0, 1)[1]
  if not place then return found end
  local ending = redis.call('ZSCORE', ENDS, place)
  if ending and tonumber(ending) <= now then
    at = place
  else
    found[#found + 1] = place
    -- A key begins with 1; 2 stands behind all keys and before the labels below.
    at = string.match(place, '^(.*)\1') .. '\2'
  end
end
found[1] = at
return found
