-- Forget a session.  Lua, because the revision of an index may be increased only if it exists; that
-- keeps a batch made from an earlier lookup from bringing the session back.
--
-- ARGV: session.

if not is_there() then return 0 end
local number = string.match(redis.call('HGET', MARKS, 's' .. ARGV[1]) or '', '^%d+')
-- First, and if there is nothing to remove: see mark.lua.
redis.call('HDEL', MARKS, 's' .. ARGV[1], 'n' .. (number or ''))
redis.call('HINCRBY', META, 'revision', 1)
return 1
