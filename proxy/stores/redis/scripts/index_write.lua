-- Add a batch.  Lua, because all of it must be added, and only to the index it was made for.
--
-- KEYS: the index's, those of the terms, and the meta of the session where that is to be there.
-- ARGV: revision, state, number of the first row, rows, time to live (s, 0 for ever), session, mark
-- ("number seq digest", '' for none), when the session began ('' where it need not be there), then the
-- postings of each term.
-- Returns 1, 2 where it was added and the index's time to live is to be renewed, 0 where the index or
-- the session is another, -1 where there is no index but something left of an earlier one, -2 where a
-- part of it is gone, because the server evicts keys, say.

local HEAD = 8
local last = #KEYS
if ARGV[8] ~= '' then
  local began = redis.call('HGET', KEYS[last], 'created')
  if not began or tonumber(began) ~= tonumber(ARGV[8]) then return 0 end
  last = last - 1
end
local meta = redis.call('HGET', META, 'revision')
if (meta or '0') ~= ARGV[1] then return 0 end
if not meta then
  for i = 2, PARTS do
    if redis.call('EXISTS', KEYS[i]) == 1 then return -1 end
  end
end
local missing = tonumber(ARGV[3]) * ROW_SIZE - redis.call('STRLEN', ROWS)
if missing ~= 0 then return missing > 0 and -2 or 0 end
if ARGV[3] ~= '0' and redis.call('EXISTS', MARKS, VOCABULARY) < 2 then return -2 end

-- How long (ms) it lives, 0 for ever; left is -1 where it does so already.  Twice the time, so that
-- it is not renewed, key by key, with every batch.  Never shortened: other sessions of the person may
-- live longer than this one.  A batch without rows tells nothing of that, and before the first row
-- nothing is known.
local ttl, left = tonumber(ARGV[5]) * 1000, redis.call('PTTL', META)
local first = not meta or (ARGV[3] == '0' and #ARGV[4] > 0)
local renewed = not first and #ARGV[4] > 0 and left >= 0 and (ttl == 0 or left < ttl)
local life = 2 * ttl
if not first and not renewed then life = math.max(left, 0) end

local function expire(key, span)
  if span > 0 then redis.call('PEXPIRE', key, string.format('%d', span)) end
end

local terms = {}
for i = PARTS + 1, last do
  local data = ARGV[HEAD + i - PARTS]
  if redis.call('APPEND', KEYS[i], data) == #data then
    terms[#terms + 1] = string.sub(KEYS[i], -TERM_SIZE)
    expire(KEYS[i], life > 0 and life + GRACE or 0)
  end
end
if #terms > 0 or not meta then redis.call('APPEND', VOCABULARY, table.concat(terms)) end
if #ARGV[4] > 0 then redis.call('APPEND', ROWS, ARGV[4]) end

if not meta then redis.call('HSET', MARKS, '', '') end
if ARGV[7] ~= '' then
  local session, number = ARGV[6], string.match(ARGV[7], '^%d+')
  local old = string.match(redis.call('HGET', MARKS, 's' .. session) or '', '^%d+')
  if old then redis.call('HDEL', MARKS, 'n' .. old) end
  redis.call('HSET', MARKS, 's' .. session, ARGV[7], 'n' .. number, session)
end
redis.call('HSET', META, 'revision', string.format('%d', tonumber(ARGV[1]) + 1), 'state', ARGV[2])

if first then
  for i = 1, PARTS do redis.call('PERSIST', KEYS[i]) end
  expire(META, life)
end
for i = 2, PARTS do
  -- One that was created just now has no time to live yet.
  if life > 0 and redis.call('PTTL', KEYS[i]) == -1 then expire(KEYS[i], life + GRACE) end
end
return renewed and 2 or 1
