-- The versions of a session's summary.  Put in front of the scripts that change them.
-- A version is "version turn seq seen JSON": it covers what stands before (turn, seq), as far as
-- the seq seen.  SUMMARIES has all that are kept, by version; the field summary of META has the one
-- in force, so that one look at the session finds it.

-- Does a version cover one of the places ({ turn, seq })?
local function covers(version, places)
  local until_turn, until_seq, seen = string.match(version, '^%d+ (%d+) (%d+) (%d+) ')
  until_turn, until_seq, seen = tonumber(until_turn), tonumber(until_seq), tonumber(seen)
  for _, place in ipairs(places) do
    local turn, seq = place[1], place[2]
    if (turn < until_turn or (turn == until_turn and seq < until_seq)) and seq <= seen then
      return true
    end
  end
  return false
end

-- Drop the versions that cover one of the places; the newest of the others is in force then.
local function drop_covering(places)
  if redis.call('HEXISTS', META, 'summary') == 0 then return end
  local newest, in_force = 0, nil
  local all = redis.call('HGETALL', SUMMARIES)
  for i = 1, #all, 2 do
    if covers(all[i + 1], places) then
      redis.call('HDEL', SUMMARIES, all[i])
    elseif tonumber(all[i]) > newest then
      newest, in_force = tonumber(all[i]), all[i + 1]
    end
  end
  if in_force then
    redis.call('HSET', META, 'summary', in_force)
  else
    redis.call('HDEL', META, 'summary')
  end
end
