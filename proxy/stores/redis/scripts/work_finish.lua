-- Forget a piece of work, or let it wait again where it was asked for meanwhile.  Lua, because
-- another may hold it by now, and nothing that is asked for may be forgotten.
--
-- KEYS: due, pieces.  ARGV: piece, lease, how often it had been asked for, when it is due again.

local asked, _, _, profile = held(KEYS[2])
if not asked then return 0 end
local meanwhile = asked - tonumber(ARGV[3])
if meanwhile > 0 then
  redis.call('ZADD', KEYS[1], ARGV[4], ARGV[1])
  keep(KEYS[2], ARGV[1], meanwhile, 0, '-', profile)
else
  redis.call('ZREM', KEYS[1], ARGV[1])
  redis.call('HDEL', KEYS[2], ARGV[1])
end
return 1
