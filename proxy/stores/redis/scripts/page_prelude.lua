-- A page of history by seq.  Put in front of the scripts that read one.

-- At most `limit` messages after the seq `at`, in the `wanted` states (by '1' for active, and '0'), of
-- `max_places` places; `whole`: with both texts of each.  What the server has evicted is left out.
-- Returns what messages.lua does.
local function page(at, limit, wanted, max_places, whole)
  local next = tonumber(redis.call('HGET', META, 'next') or 0)
  local last = math.min(at + max_places, next - 1)
  local entries, states, texts = {}, {}, {}
  local MAX_BYTES = 1000000 -- of texts at once, so that the server is never busy for long
  local size = 0

  while at < last and #entries < limit and size < MAX_BYTES do
    at = at + 1
    local seq = padded(at)
    local card = redis.call('HGET', CARDS, seq)
    if card then
      local tokens, entry = string.match(card, '^(%d+) (.*)$')
      local state = redis.call('ZSCORE', ACTIVE, seq .. ' ' .. tokens) and '1' or '0'
      local body, wire = false, false
      if wanted[state] then body, wire = unpack(redis.call('HMGET', LOG, seq, 'w' .. seq)) end
      if body then
        entries[#entries + 1] = entry
        states[#states + 1] = state
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
end
