-- Forget a session.  Lua, because only an index that is there has a revision to go on; with it a
-- batch made from an earlier look cannot bring the session back.
--
-- ARGV: session.

if not is_there() then return 0 end
local number = string.match(redis.call('HGET', MARKS, 's' .. ARGV[1]) or '', '^%d+')
-- First, and if there is nothing to remove: see mark.lua.
redis.call('HDEL', MARKS, 's' .. ARGV[1], 'n' .. (number or ''))
redis.call('HINCRBY', META, 'revision', 1)
return 1
