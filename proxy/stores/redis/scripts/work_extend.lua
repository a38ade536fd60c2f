-- Hold a piece of work longer.  Lua, because another may hold it by now.
--
-- KEYS: due, pieces.  ARGV: piece, lease, until.

if not held(KEYS[2]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
return 1
