-- How a message gets other words in its place.  Put in front of the scripts that do, behind
-- changes_prelude.lua.
--
-- An edit is told at ARGV[at]: place (exchange, index), card, tokens, body, whether it has a wire
-- (0/1), wire, the wire that it had.

local EDIT_SIZE = 8

-- Is the message there, with the wire that it had?
local function is_as_it_was(at)
  local _, _, seq = message_at(ARGV[at], ARGV[at + 1])
  if not seq then return false end
  local wire = redis.call('HGET', LOG, 'w' .. seq) or redis.call('HGET', LOG, seq)
  return wire == ARGV[at + 7]
end

-- Returns its seq.
local function edit(at)
  local tokens, turn, seq = message_at(ARGV[at], ARGV[at + 1])
  local number = string.format('%d', tonumber(seq))
  local active = supersede(tokens, seq)
  local place = '[[' .. turn .. ',' .. number .. '],'
  redis.call('HSET', CARDS, seq, ARGV[at + 3] .. ' ' .. place .. ARGV[at + 2] .. ']')
  if active then activate(ARGV[at + 3], turn, seq) end
  redis.call('HSET', LOG, seq, ARGV[at + 4])
  redis.call('HDEL', LOG, 'w' .. seq)
  if ARGV[at + 5] == '1' then redis.call('HSET', LOG, 'w' .. seq, ARGV[at + 6]) end
  note(turn, seq)
  return tonumber(number)
end
