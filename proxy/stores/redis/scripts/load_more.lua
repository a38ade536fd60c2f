-- More of a log that is read in pieces.  Lua, because what is read must belong together.
--
-- ARGV: the place in the log to read from.
-- Returns { entries joined by commas, size of the log, stamp as in load.lua }.

local stamp = log_stamp(unpack(redis.call('HMGET', META, 'created', 'changes', 'revised')))
return { (entries(ranked(tonumber(ARGV[1]), PIECE))), redis.call('ZCARD', ACTIVE), stamp }
