-- Give keys a time to live.  Lua, because it is one command for thousands of keys.
--
-- KEYS: the index's, then others.  ARGV: the time (s, 0 for ever), and whether the index itself is
-- meant too: it comes last, so that what was cut short is done again.

local span = tonumber(ARGV[1]) * 1000
local function live(key, more)
  if span == 0 then
    redis.call('PERSIST', key)
  else
    redis.call('PEXPIRE', key, string.format('%d', span + more))
  end
end

for i = PARTS + 1, #KEYS do live(KEYS[i], GRACE) end
if ARGV[2] == '1' then
  for i = 2, PARTS do live(KEYS[i], GRACE) end
  live(META, 0)
end
return 1
