-- What several scripts share: it is put in front of each of them when it is loaded.
--
-- Every script gets the keys of one session, all under one hash tag, as its first eight; last and
-- profile are of the newest exchange, revised names the last change by hand:
--   meta       hash: owner, title, metadata, system, system_tokens, next, messages, tokens, last,
--              profile, ttl, created, active_at, revision, revised, changes, summary, stalled,
--              window:PROFILE -> "turn seq"
--   cards      hash: seq -> tokens SPACE [[turn,seq],card]   every message
--   log        hash: seq -> body, w<seq> -> wire where it differs
--   active     zset: "seq tokens", score turn                the log: sorted by (turn, seq)
--   exchanges  hash: x<id> -> first SP size SP started SP record, u<id> -> usage, k<key> -> id
--   keys       zset: idempotency key, score its time
--   choices    set: exchanges whose reply has several choices
--   summaries  hash: version of the summary -> see summary_prelude.lua
-- A seq is ten digits wide, so that members of one turn sort by it.  Messages are opaque strings.
-- Time comes in arguments; but for the lists, nothing depends on anything but keys and arguments.

local META, CARDS, LOG, ACTIVE = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local EXCHANGES, IDEMPOTENCY, CHOICES, SUMMARIES = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local SESSION_KEYS = 8
local BATCH = 1000 -- unpack fails near 8,000 items

local function padded(seq)
  return string.format('%010d', seq)
end

-- first, size, started_at, record of an exchange as it is stored, or nil
local function parts_of(stored)
  if not stored then return nil end
  local first, size, started, record = string.match(stored, '^(%d+) (%d+) (%S+) (.*)$')
  return tonumber(first), tonumber(size), tonumber(started), record
end

local function exchange_of(id)
  return parts_of(redis.call('HGET', EXCHANGES, 'x' .. id))
end

-- The card in "tokens [[turn,seq],card]", as a list in the order of its fields.
local function card_of(stored)
  return cjson.decode(string.match(stored, '^%d+ (.*)$'))[2]
end

-- The exchange that the message of a card belongs to.
local function exchange_in(card)
  return string.match(card[1], '^(.*)%.%d+$')
end

-- The id of the exchange of the message at a seq, and what exchange_of returns: nil where either is gone.
local function exchange_at(seq)
  local stored = redis.call('HGET', CARDS, padded(seq))
  local id = stored and exchange_in(card_of(stored))
  if id then return id, exchange_of(id) end
end

-- Is the message at a seq still this one?  A server that has lost its newest writes other messages there.
local function is_there(seq, id)
  local stored = id ~= '' and redis.call('HGET', CARDS, padded(seq))
  return stored and string.find(stored, '],["' .. id .. '",', 1, true) -- a card begins with its id
end

-- The first seq and the size of an exchange that was there before the script, or nil.
local spans = {}
local function span_of(id)
  if not spans[id] then
    local first, size = exchange_of(id)
    if not first then return nil end
    spans[id] = { first, size }
  end
  return unpack(spans[id])
end

-- tokens, turn and seq (padded) of the message at an index of an exchange, or nil
local function message_at(id, index)
  local first, size = span_of(id)
  if not first or tonumber(index) >= size then return nil end
  local seq = padded(first + tonumber(index))
  local card = redis.call('HGET', CARDS, seq)
  if not card then return nil end
  local tokens, turn = string.match(card, '^(%d+) %[%[(%d+),')
  return tokens, turn, seq
end

-- What tells one state of a session from another, of its revision, created and last.
local function stamp_of(meta)
  return table.concat({ meta[1], meta[2], meta[3] or '' }, ' ')
end

-- What changes with anything of the log but what is appended; created, changes and revised of META.
local function log_stamp(created, changes, revised)
  return table.concat({ created or '', changes or '0', revised or '' }, ' ')
end

-- Add to the counts of the active log.
local function count(messages, tokens)
  redis.call('HINCRBY', META, 'messages', messages)
  redis.call('HINCRBY', META, 'tokens', tokens)
end

-- Put a message into the log; whether it was not there.
local function activate(tokens, turn, seq)
  local new = redis.call('ZADD', ACTIVE, turn, seq .. ' ' .. tokens) == 1
  if new then count(1, tokens) end
  return new
end

-- Take a message out of the log; whether it was there.
local function supersede(tokens, seq)
  local there = redis.call('ZREM', ACTIVE, seq .. ' ' .. tokens) == 1
  -- A difference, as the negative of 0 is no integer for Redis before 7.
  if there then count(-1, 0 - tokens) end
  return there
end

-- Add what is collected to a key, and begin anew; at most BATCH at once, as unpack has its limit.
local function flush(command, key, parts)
  if #parts > 0 then redis.call(command, key, unpack(parts)) end
  return {}
end

-- Write the drafts that begin at ARGV[at], each: card, tokens, flags (1 active, 2 choice, 4 with a wire
-- of its own, added up), the place that its turn began at ('' at itself, an index in this exchange, or
-- exchange SPACE index), body, wire.  They are neighbours in history from seq on, and are the first
-- ones of the exchange if there are several `drafts`.
local DRAFT_SIZE = 6
local function turn_of(id, place)
  local there, index = string.match(place, '^(.+) (%d+)$')
  local _, turn = message_at(there or id, index or place)
  return turn
end

local function put(id, seq, at, drafts)
  local turns, cards, texts, places = {}, {}, {}, {}
  local messages, tokens = 0, 0
  for i = 0, (drafts or 1) - 1 do
    local card, cost, flags, there, body, wire = unpack(ARGV, at, at + DRAFT_SIZE - 1)
    local place, number = padded(seq + i), seq + i
    local turn = number
    if there ~= '' then turn = turns[tonumber(there)] or turn_of(id, there) or number end
    turns[i] = turn
    cards[#cards + 1] = place
    cards[#cards + 1] = cost .. ' [[' .. turn .. ',' .. number .. '],' .. card .. ']'
    texts[#texts + 1] = place
    texts[#texts + 1] = body
    flags = tonumber(flags)
    if flags >= 4 then
      texts[#texts + 1] = 'w' .. place
      texts[#texts + 1] = wire
    end
    if flags % 2 == 1 then
      places[#places + 1] = turn
      places[#places + 1] = place .. ' ' .. cost
      messages, tokens = messages + 1, tokens + tonumber(cost)
    end
    if flags % 4 >= 2 then redis.call('SADD', CHOICES, id) end
    if #texts >= BATCH then
      cards, texts = flush('HSET', CARDS, cards), flush('HSET', LOG, texts)
      places = flush('ZADD', ACTIVE, places)
    end
    at = at + DRAFT_SIZE
  end
  flush('HSET', CARDS, cards)
  flush('HSET', LOG, texts)
  flush('ZADD', ACTIVE, places)
  if messages > 0 then count(messages, tokens) end
end

-- Let all keys of the session live on as long (ms) as its meta did before the script: a key that
-- was created just now has no time to live yet.
local function live_on(left)
  if left < 0 then return end
  for i = 1, SESSION_KEYS do redis.call('PEXPIRE', KEYS[i], left) end
end

-- HMGET of any number of fields.
local function fetch(key, fields)
  local values = {}
  for i = 1, #fields, BATCH do
    local last = math.min(i + BATCH - 1, #fields)
    for _, value in ipairs(redis.call('HMGET', key, unpack(fields, i, last))) do
      values[#values + 1] = value
    end
  end
  return values
end

local PIECE = 500 -- entries of a long log that are read at once

-- The seqs of that many messages of the log, from a place on.
local function ranked(from, count)
  local found = redis.call('ZRANGE', ACTIVE, from, from + count - 1)
  for i = 1, #found do found[i] = string.sub(found[i], 1, 10) end
  return found
end

-- The entries of messages joined by commas, and the seqs of those that are there.
local function entries(seqs)
  local there, found = {}, {}
  for i, card in ipairs(fetch(CARDS, seqs)) do
    if card then
      there[#there + 1] = seqs[i]
      found[#found + 1] = string.sub(card, string.find(card, ' ', 1, true) + 1)
    end
  end
  return table.concat(found, ','), there
end

-- The entries of those of these messages that are not in the log, joined by commas.
local function idle(seqs)
  local found = {}
  for i, card in ipairs(fetch(CARDS, seqs)) do
    local tokens = card and string.match(card, '^%d+')
    if tokens and not redis.call('ZSCORE', ACTIVE, seqs[i] .. ' ' .. tokens) then
      found[#found + 1] = string.sub(card, #tokens + 2)
    end
  end
  return table.concat(found, ',')
end

-- Give all keys of the session the time to live (seconds); 0 is for ever.
local function expire(ttl)
  for i = 1, SESSION_KEYS do
    if ttl > 0 then redis.call('EXPIRE', KEYS[i], ttl) else redis.call('PERSIST', KEYS[i]) end
  end
end
