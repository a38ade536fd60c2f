-- Forget names of which no piece is kept: a server that evicts keys has lost it, and they stand in the
-- way of all others.  Lua, because one may be asked for again meanwhile.
--
-- KEYS: due, pieces.  ARGV: names.

for _, name in ipairs(ARGV) do
  if redis.call('HEXISTS', KEYS[2], name) == 0 then redis.call('ZREM', KEYS[1], name) end
end
return 1
