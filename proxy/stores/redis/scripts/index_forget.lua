-- Forget a session.  Lua, because only an index that is there has a revision to go on; with it a
-- batch made from an earlier look cannot bring the session back.
--
-- ARGV: session.

if redis.call('EXISTS', META) == 0 then return 0 end
redis.call('HINCRBY', META, 'revision', 1)
local number = string.match(redis.call('HGET', MARKS, 's' .. ARGV[1]) or '', '^%d+')
if number then redis.call('HDEL', MARKS, 's' .. ARGV[1], 'n' .. number) end
return 1
