-- Store vectors.  Lua, because only an index that is there has any, and they live as long as it does.
--
-- KEYS: the index's, the vectors'.  ARGV: size, model, then number and vector in turns.

if not is_there() then return 0 end
local VECTORS = KEYS[PARTS + 1]
-- Zeros erase: see mark.lua.
if not string.find(ARGV[4] or '', '[^%z]') then redis.call('SREM', MODELS, '') end
for i = 3, #ARGV, 2 do
  redis.call('SETRANGE', VECTORS, tonumber(ARGV[i]) * tonumber(ARGV[1]), ARGV[i + 1])
end
redis.call('SADD', MODELS, ARGV[1] .. ' ' .. ARGV[2])
local left = redis.call('PTTL', META)
for _, key in ipairs({ MODELS, VECTORS }) do
  if left > 0 and redis.call('PTTL', key) == -1 then redis.call('PEXPIRE', key, left + GRACE) end
end
return 1
