-- Put a session into a list.  Lua, because only the later of two activities may stay, and ZADD GT
-- came with Redis 6.2; and a session may not get into the list of a person who is erased.
--
-- KEYS: sessions, expiries, the person's mark.  ARGV: session id, last activity, ttl, when what is
-- written began ('' for unknown), whether the mark counts even if the session is in the list already
-- (0/1).
-- Returns 1, or 0 if the mark forbids it.

if forbids(redis.call('GET', KEYS[3]), ARGV[4]) then
  if ARGV[5] == '1' or not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return 0 end
end
touch(KEYS[1], KEYS[2], ARGV[1], ARGV[2], tonumber(ARGV[3]))
return 1
