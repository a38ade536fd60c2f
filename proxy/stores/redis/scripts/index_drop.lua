-- Drop an index, but for a state that the next one begins with.  Lua, because where there is none
-- nothing is to be kept.
--
-- ARGV: state.  Returns whether there was one (0/1).

local there = redis.call('HDEL', META, 'revision')
if there == 1 then redis.call('HSET', META, 'state', ARGV[1]) end
return there
