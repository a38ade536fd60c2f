-- More of a log that is read in pieces.  Lua, because what is read must belong together.
--
-- ARGV: the place in the log to read from.
-- Returns { entries joined by commas, size of the log, created, changes }.

local meta = redis.call('HMGET', META, 'created', 'changes')
return {
  (entries(ranked(tonumber(ARGV[1]), PIECE))), redis.call('ZCARD', ACTIVE), meta[1], meta[2],
}
