-- The inactive choices of a log that has many, in pieces.  Lua, because what is read must belong together.
--
-- ARGV: SSCAN's cursor; or '' and seqs, not more than a PIECE, to look for them among these.
-- Returns { SSCAN's next cursor, a string "first size" of each exchange, stamp as in load.lua }; or
-- { '', entries joined by commas, stamp }.

local stamp = log_stamp(unpack(redis.call('HMGET', META, 'created', 'changes', 'revised')))
if ARGV[1] == '' then
  local seqs = {}
  for i = 2, #ARGV do seqs[#seqs + 1] = padded(ARGV[i]) end
  return { '', idle(seqs), stamp }
end
local cursor, ids = unpack(redis.call('SSCAN', CHOICES, ARGV[1], 'COUNT', PIECE))
local found = {}
for _, id in ipairs(ids) do
  local first, size = exchange_of(id)
  if first then found[#found + 1] = string.format('%d %d', first, size) end
end
return { cursor, found, stamp }
