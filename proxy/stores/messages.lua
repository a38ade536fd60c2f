-- A page of history by seq.  Lua, because the state of a message is whether the log has it: a client
-- would have to ask for each.
--
-- ARGV: the seq to begin behind, most messages, whether active ones and superseded ones are wanted
-- (0/1 each), most places to look at.
-- Returns { the last seq looked at, or '' at the end of history; entries joined by commas;
-- a string of 1 (active) and 0; their wires }.

local at, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
local wanted = { ['1'] = ARGV[3] == '1', ['0'] = ARGV[4] == '1' }
local next = tonumber(redis.call('HGET', META, 'next') or 0)
local last = math.min(at + tonumber(ARGV[5]), next - 1)
local entries, states, wires = {}, {}, {}

while at < last and #entries < limit do
  at = at + 1
  local seq = padded(at)
  local card = redis.call('HGET', CARDS, seq)
  if card then
    local tokens, entry = string.match(card, '^(%d+) (.*)$')
    local state = redis.call('ZSCORE', ACTIVE, seq .. ' ' .. tokens) and '1' or '0'
    if wanted[state] then
      entries[#entries + 1] = entry
      states[#states + 1] = state
      wires[#wires + 1] = redis.call('HGET', LOG, 'w' .. seq) or redis.call('HGET', LOG, seq)
    end
  end
end
local rest = at < next - 1 and string.format('%d', at) or ''
return { rest, table.concat(entries, ','), table.concat(states), wires }
