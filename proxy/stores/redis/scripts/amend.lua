-- Add usage and further choices to a recorded exchange.  Lua, because each must be added once, and
-- only where the exchange is in history.
--
-- ARGV: exchange, usage ('' for none), then for each draft its index and the draft (see put).

local id, usage = ARGV[1], ARGV[2]
local first, size = exchange_of(id)
if not first then return 0 end

local left = redis.call('PTTL', META)
if usage ~= '' then redis.call('HSETNX', EXCHANGES, 'u' .. id, usage) end
for at = 3, #ARGV, DRAFT_SIZE + 1 do
  local index = tonumber(ARGV[at])
  if index < size and redis.call('HEXISTS', CARDS, padded(first + index)) == 0 then
    put(id, first + index, at + 1)
  end
end
redis.call('HINCRBY', META, 'revision', 1)
live_on(left)
return 1
