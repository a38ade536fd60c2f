-- Exchanges that have messages, the newest first.  Lua, because each is found by the message before
-- the previous one: a client would need round trips for each.
--
-- ARGV: the seq to begin below ('' for the newest), the limit of exchanges, the limit of places to
-- examine.
-- Returns { the lowest seq examined, or '' at the beginning of history; then of each exchange its
-- first seq, its record, its usage, and the indexes of its messages, joined by commas }.
-- What the server has evicted is left out.

local next = tonumber(redis.call('HGET', META, 'next') or 1)
local at = math.min(tonumber(ARGV[1]) or next, next)
local limit, places = 4 * tonumber(ARGV[2]), tonumber(ARGV[3])
local found = { '' }

while at > 1 and #found <= limit and places > 0 do
  at = at - 1
  places = places - 1
  local id, first, size, _, record = exchange_at(at)
  if first then
    local indexes = {}
    for index = 0, size - 1 do
      if redis.call('HEXISTS', CARDS, padded(first + index)) == 1 then indexes[#indexes + 1] = index end
    end
    found[#found + 1] = first
    found[#found + 1] = record
    found[#found + 1] = redis.call('HGET', EXCHANGES, 'u' .. id)
    found[#found + 1] = table.concat(indexes, ',')
    at, places = first, places - size
  end
end
if at > 1 then found[1] = string.format('%d', at) end
return found
