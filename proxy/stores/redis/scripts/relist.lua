-- Put sessions into a list that has lost them.  Lua, because a full server must take that too: whoever
-- erases has to find them; see mark.lua.
--
-- KEYS: sessions, expiries.  ARGV: session id, last activity and ttl of each.

for i = 1, #ARGV, 3 do
  if not redis.call('ZSCORE', KEYS[1], ARGV[i]) then
    redis.call('ZREM', KEYS[1], ARGV[i])
    touch(KEYS[1], KEYS[2], ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]))
  end
end
return 1
