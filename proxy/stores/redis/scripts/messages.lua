-- A page of history by seq.  Lua, because the state of a message is whether the log has it: a client
-- would have to ask for each.
--
-- ARGV: the seq to begin behind, most messages, whether active ones and superseded ones are wanted
-- (0/1 each), most places to look at, whether all that is kept of each is wanted (0/1).
-- Returns { the last seq looked at, or '' at the end of history; entries joined by commas;
-- a string of 1 (active) and 0; their wires, or, with all that is kept, body and wire (nil where it is
-- the body) in turns }.

local at, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
local wanted = { ['1'] = ARGV[3] == '1', ['0'] = ARGV[4] == '1' }
local whole = ARGV[6] == '1'
local next = tonumber(redis.call('HGET', META, 'next') or 0)
local last = math.min(at + tonumber(ARGV[5]), next - 1)
local entries, states, texts = {}, {}, {}
local MOST_BYTES = 1000000 -- of texts at once, so that the server is never busy for long
local size = 0

while at < last and #entries < limit and size < MOST_BYTES do
  at = at + 1
  local seq = padded(at)
  local card = redis.call('HGET', CARDS, seq)
  if card then
    local tokens, entry = string.match(card, '^(%d+) (.*)$')
    local state = redis.call('ZSCORE', ACTIVE, seq .. ' ' .. tokens) and '1' or '0'
    if wanted[state] then
      entries[#entries + 1] = entry
      states[#states + 1] = state
      local body, wire = unpack(redis.call('HMGET', LOG, seq, 'w' .. seq))
      if whole then
        texts[#texts + 1], texts[#texts + 2] = body, wire
      else
        texts[#texts + 1] = wire or body
      end
      size = size + #body + (wire and #wire or 0)
    end
  end
end
local rest = at < next - 1 and string.format('%d', at) or ''
return { rest, table.concat(entries, ','), table.concat(states), texts }
