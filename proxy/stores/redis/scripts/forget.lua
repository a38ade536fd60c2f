-- Drop dead sessions from a list.  Lua, because a session that has come to life again since it was
-- seen dead must stay: its score has changed.
--
-- KEYS: sessions, expiries.  ARGV: session id and the score it was seen with, in turns; an empty
-- score drops it in any case.

for i = 1, #ARGV, 2 do
  local score = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if score and (ARGV[i + 1] == '' or tonumber(score) == tonumber(ARGV[i + 1])) then
    redis.call('ZREM', KEYS[1], ARGV[i])
    redis.call('ZREM', KEYS[2], ARGV[i])
  end
end
let_end(KEYS[1], KEYS[2])
return 1
