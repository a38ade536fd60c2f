-- Take an exchange back that should not have been written: see redis_commit.py.  Lua, because it must
-- not be half there, and a session that has nothing else is to be gone.
--
-- ARGV: exchange, the system message that came with it ('' for none).
-- Returns 1 where the session is gone, else 0.

local first, size = exchange_of(ARGV[1])
if not first then return 1 - redis.call('EXISTS', META) end
local left = redis.call('PTTL', META)
for index = 0, size - 1 do remove(ARGV[1], index) end
touch_exchange(ARGV[1])
note_changes()
settle()
if not redis.call('HGET', META, 'last') then
  redis.call('UNLINK', unpack(KEYS, 1, SESSION_KEYS))
  return 1
end
if ARGV[2] ~= '' and redis.call('HGET', META, 'system') == ARGV[2] then
  redis.call('HDEL', META, 'system', 'system_tokens')
end
redis.call('HINCRBY', META, 'revision', 1)
live_on(left)
return 0
