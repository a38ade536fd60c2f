-- Bring some of a session that is put back, under names that nobody reads.  Lua, because without a
-- time to live what is cut short would stay for ever.
--
-- KEYS: of that session.  ARGV: how long they live from now (s), then of each value: which key it
-- belongs to, its field, and the value: that of a hash, or the score of a member.

for at = 2, #ARGV, 3 do
  local key = KEYS[tonumber(ARGV[at])]
  if key == ACTIVE then
    redis.call('ZADD', key, ARGV[at + 2], ARGV[at + 1])
  elseif key == CHOICES then
    redis.call('SADD', key, ARGV[at + 1])
  else
    redis.call('HSET', key, ARGV[at + 1], ARGV[at + 2])
  end
end
expire(tonumber(ARGV[1]))
return 1
