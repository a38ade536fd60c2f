-- Forget pieces of work.  Lua, because they must go from both keys at once.
--
-- KEYS: due, pieces.  ARGV: pieces.

redis.call('ZREM', KEYS[1], unpack(ARGV))
redis.call('HDEL', KEYS[2], unpack(ARGV))
return 1
