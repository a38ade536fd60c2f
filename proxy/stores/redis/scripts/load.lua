-- Load a session.  Lua, because where the log begins is known only here: without it a load would take
-- three round trips, and commits could come in between.
--
-- ARGV: profile, whole (0/1), max_messages, max_tokens ('' for none), idempotency key, the time from
-- which on keys count, tokens that no summary covers ('' if not limited); then of the caller's cached
-- log its stamp ('' without one), its first turn, and the seq that was free then; the session; the
-- newest message of the cached log, and of the cached passages: seq and id of each; whether the window
-- may have more than PIECE messages (0/1).
-- The keys after the session's, if any, are meta and marks of its own index, in its slot.
-- Returns {} for an unknown session; { messages } if so many are left without meta, which tells the
-- owner: they are not returned, and the next commit removes them.
-- Else returns { owner, system, system_tokens, messages, tokens, start, last, last's usage, attempt,
-- attempt's usage, entries joined by commas, how many messages the window should have, seqs of those
-- that exist joined by commas, their bodies, inactive choices joined by commas, summary, changes,
-- stalled, size of the log, stamp, next, the turn it begins with, whether the cached log is current and
-- was left out (0/1), for a session without user what index_lookup.lua returns without terms, whether
-- the inactive choices must be read with load_choices.lua (0/1), whether the newest cached passage
-- still exists (0/1), when the session began, the place in the log of what is to be read of the window
-- with load_more.lua, 0 for none }.
-- Of a whole log the entries are only the first PIECE, and so is the window, since a long script would
-- block the server; the others are read with load_more.lua.
-- If the window has more than MAX_MESSAGES it returns { 'large' }, or for a whole log no bodies; { 'long' }
-- if it has more than it may.
-- What the server has evicted is left out.

local MAX_MESSAGES = 24000 -- messages of the window: a longer script would block the server
local SOON = 60000 -- ms within which all keys of an expired session are gone
local profile, whole, key, oldest = ARGV[1], ARGV[2] == '1', ARGV[5], tonumber(ARGV[6])
local max_messages, max_tokens, uncovered = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[7])

-- An expired session may have no meta either, but its other keys have hardly any time left.
local function headless()
  local left, messages = redis.call('PTTL', CARDS), redis.call('HLEN', CARDS)
  local evicted = messages > 0 and (left < 0 or left > SOON)
  return evicted and { messages } or {}
end

local meta = redis.call('HMGET', META, 'next', 'owner', 'system', 'system_tokens', 'messages',
  'tokens', 'last', 'window:' .. profile, 'summary', 'changes', 'stalled', 'created', 'revised')
if not meta[1] then return headless() end
local start, last, summary = meta[8], meta[7], meta[9]
local stamp = log_stamp(meta[12], meta[10], meta[13])

-- The newest exchange: the first seq, how many, its record and its usage.
local newest_first, newest_size, newest_record, newest_usage = nil, 0, false, false
if last then
  local found = redis.call('HMGET', EXCHANGES, 'x' .. last, 'u' .. last)
  local first, size, _, record = parts_of(found[1])
  newest_first, newest_size, newest_record, newest_usage = first, size or 0, record or false, found[2]
end

-- The turn from which on the log just exceeds these bounds (nil for none); `least` if the whole log
-- does not.
local function reaching(max_messages, max_tokens, least)
  local function exceeded(messages, tokens)
    return (max_messages and messages > max_messages) or (max_tokens and tokens > max_tokens)
  end
  if not exceeded(tonumber(meta[5]), tonumber(meta[6])) then return least end
  local messages, tokens, offset = 0, 0, 0
  while true do
    local rows = redis.call('ZREVRANGE', ACTIVE, offset, offset + 49, 'WITHSCORES')
    if #rows == 0 then return least end
    for i = 1, #rows, 2 do
      local turn = tonumber(rows[i + 1])
      if turn <= least then return least end
      messages, tokens = messages + 1, tokens + tonumber(string.sub(rows[i], 12))
      if exceeded(messages, tokens) then return turn end
    end
    offset = offset + 50
  end
end

-- The turns before `begin` that the last exchange belongs to, ascending: late answers to a call.
local function older_turns(begin)
  local turns, known = {}, {}
  -- Of an exchange of thousands the end is enough: they are no late answers.
  local seqs = {}
  for index = math.max(0, newest_size - PIECE), newest_size - 1 do
    seqs[#seqs + 1] = padded(newest_first + index)
  end
  for i, card in ipairs(fetch(CARDS, seqs)) do
    local tokens, turn = string.match(card or '', '^(%d+) %[%[(%d+),')
    turn = tonumber(turn)
    if turn and turn < begin and not known[turn]
      and redis.call('ZSCORE', ACTIVE, seqs[i] .. ' ' .. tokens) then
      known[turn] = true
      turns[#turns + 1] = turn
    end
  end
  table.sort(turns)
  return turns
end

local function places(from, to, most)
  local found = redis.call('ZRANGEBYSCORE', ACTIVE, from, to, 'LIMIT', 0, most or -1)
  for i = 1, #found do found[i] = string.sub(found[i], 1, 10) end
  return found
end

local function backwards(list)
  local found = {}
  for i = #list, 1, -1 do found[#found + 1] = list[i] end
  return found
end

-- What is at the end of the log from a seq on, if that is in no turn before `begin`; how much there is.
local function latest(from, begin)
  local all, newest, step = redis.call('ZCOUNT', ACTIVE, begin, '+inf'), {}, 10
  while #newest < all do
    local last = math.min(#newest + step, all) - 1
    local members = redis.call('ZREVRANGE', ACTIVE, #newest, last)
    step = BATCH -- what is more than one turn or two may be thousands
    for _, member in ipairs(members) do
      local seq = string.sub(member, 1, 10)
      if seq < from then return backwards(newest), all end
      newest[#newest + 1] = seq
    end
  end
  return backwards(newest), all
end

-- The entries of inactive choices; nil if they are among more than PIECE messages.
local function inactive_choices()
  local left, seqs = PIECE, {}
  if redis.call('SCARD', CHOICES) > left then return nil end
  for _, id in ipairs(redis.call('SMEMBERS', CHOICES)) do
    local first, size = exchange_of(id)
    left = left - (size or 0)
    if left < 0 then return nil end
    for index = 0, (size or 0) - 1 do seqs[#seqs + 1] = padded(first + index) end
  end
  return idle(seqs)
end

local newest = redis.call('ZREVRANGE', ACTIVE, 0, 0, 'WITHSCORES')[2]
local begin = 0
if start and newest then
  begin = math.min(tonumber(string.match(start, '^%d+')), tonumber(newest))
elseif not start then
  begin = reaching(max_messages, max_tokens, 0)
end
-- The turn that the summary reaches to; what it does not cover is shown too, within bounds.
local covered = summary and tonumber(string.match(summary, '^%d+ (%d+)')) or 0
if uncovered and covered < begin then
  begin = math.min(begin, reaching(nil, uncovered, covered))
end
local others = begin > 0 and older_turns(begin) or {}
local known = not whole and stamp == ARGV[8] and #others == 0 and begin >= tonumber(ARGV[9])
  and tonumber(meta[1]) - tonumber(ARGV[10]) <= MAX_MESSAGES and is_there(ARGV[12], ARGV[13])

-- How much is to be shown?  A turn may have any number of messages.
local function amount()
  local all = redis.call('ZCOUNT', ACTIVE, begin, '+inf')
  for _, turn in ipairs(others) do all = all + redis.call('ZCOUNT', ACTIVE, turn, turn) end
  return all
end
local all_shown = known and 0 or amount()
local large = all_shown > MAX_MESSAGES
if large and not whole then return { 'large' } end
if all_shown > PIECE and not large and ARGV[16] == '0' then return { 'long' } end
local shown, count, rest = {}, all_shown, 0
if known then
  -- What came farther up is missed in the count, and all is read again then.
  shown, count = latest(padded(ARGV[10]), begin)
elseif not large then
  for _, turn in ipairs(others) do
    for _, seq in ipairs(places(turn, turn)) do shown[#shown + 1] = seq end
  end
  for _, seq in ipairs(places(begin, '+inf', PIECE)) do shown[#shown + 1] = seq end
  rest = redis.call('ZCOUNT', ACTIVE, '-inf', '(' .. string.format('%d', begin)) + PIECE
  if rest >= redis.call('ZCARD', ACTIVE) then rest = 0 end
end

local shown_entries, shown_seqs = entries(shown)
local attempt, attempt_usage = false, false
local since = key ~= '' and redis.call('ZSCORE', IDEMPOTENCY, key)
if since and tonumber(since) > oldest then
  local id = redis.call('HGET', EXCHANGES, 'k' .. key) or ''
  attempt = select(4, exchange_of(id)) or false
  attempt_usage = redis.call('HGET', EXCHANGES, 'u' .. id)
end
local lookup = {}
if not meta[2] and KEYS[SESSION_KEYS + 1] then
  local index = redis.call('HMGET', KEYS[SESSION_KEYS + 1], 'revision', 'state')
  local mark = index[1] and redis.call('HGET', KEYS[SESSION_KEYS + 2], 's' .. ARGV[11])
  if index[2] then lookup = { index[1] or '0', index[2], mark or '' } end
end
local all = whole and (entries(ranked(0, PIECE))) or shown_entries
local choices = whole and inactive_choices()
return {
  meta[2], meta[3], meta[4], meta[5], meta[6], start, newest_record, newest_usage, attempt,
  attempt_usage, all, count, table.concat(shown_seqs, ','), fetch(LOG, shown_seqs),
  choices or '', summary, meta[10], meta[11], redis.call('ZCARD', ACTIVE),
  stamp, meta[1], string.format('%d', begin), known and 1 or 0, lookup,
  whole and not choices and 1 or 0, is_there(ARGV[14], ARGV[15]) and 1 or 0, meta[12],
  rest,
}
