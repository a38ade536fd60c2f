-- Add what another tenant has spent on a day.  Lua, because what was cut short is done again, and
-- must not be added twice.
--
-- KEYS: the day's hash.  ARGV: a name for this addition, the seconds that the hash lives, then field
-- and number of each.

if redis.call('HSETNX', KEYS[1], ARGV[1], 1) == 0 then return 0 end
for i = 3, #ARGV, 2 do redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1]) end
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1
