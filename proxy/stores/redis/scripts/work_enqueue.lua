-- Ask for work.  Lua, because what becomes of a piece depends on what it is.
--
-- KEYS: due, pieces.  ARGV: pieces as enqueue wants them, one after another.

for at = 1, #ARGV, DUE_SIZE do enqueue(KEYS[1], KEYS[2], at) end
return 1
