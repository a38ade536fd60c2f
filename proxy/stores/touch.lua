-- Put a session into a list.  Lua, because only the later of two activities may stay, and ZADD GT
-- came with Redis 6.2.
--
-- KEYS: sessions, expiries.  ARGV: session id, last activity, ttl, now.

touch(KEYS[1], KEYS[2], ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4])
return 1
