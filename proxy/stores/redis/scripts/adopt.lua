-- Put a dumped session under these keys.  Lua, because it must be all of it or nothing, and never
-- over a session that is not an earlier copy.
--
-- ARGV: stamp of the copy that may be replaced, time to live (ms), payloads ('' for none).
-- Returns 1, or 0 where another session has this id.

local meta = redis.call('HMGET', META, 'revision', 'created', 'last')
if meta[1] and stamp_of(meta) ~= ARGV[1] then return 0 end
local left = math.max(tonumber(ARGV[2]), 0)
for i = 1, SESSION_KEYS do
  redis.call('UNLINK', KEYS[i])
  if ARGV[i + 2] ~= '' then redis.call('RESTORE', KEYS[i], left, ARGV[i + 2]) end
end
return 1
