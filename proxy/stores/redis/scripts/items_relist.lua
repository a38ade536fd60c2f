-- List places of items again.  Lua, because an item may go meanwhile.
--
-- ARGV: where to go on, 0 at first, and about how many are looked at.
-- Returns where to go on then, 0 at the end.

local at, found = unpack(redis.call('HSCAN', ITEMS, ARGV[1], 'COUNT', ARGV[2]))
-- Nothing is removed: see mark.lua.
redis.call('ZREM', PLACES, '')
for i = 1, #found, 2 do redis.call('ZADD', PLACES, 0, found[i]) end
local left = redis.call('PTTL', ITEMS)
if left > 0 then redis.call('PEXPIRE', PLACES, left) end
return at
