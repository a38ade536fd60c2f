-- A page of history by seq.  Lua, because the state of a message is whether the log has it: a client
-- would have to ask for each.
--
-- ARGV: the seq to begin behind, most messages, whether active ones and superseded ones are wanted
-- (0/1 each), most places to look at, whether all that is kept of each is wanted (0/1).
-- Returns { the last seq looked at, or '' at the end of history; entries joined by commas;
-- a string of 1 (active) and 0; their wires, or, with all that is kept, body and wire (nil where it is
-- the body) in turns }.

local wanted = { ['1'] = ARGV[3] == '1', ['0'] = ARGV[4] == '1' }
return page(tonumber(ARGV[1]), tonumber(ARGV[2]), wanted, tonumber(ARGV[5]), ARGV[6] == '1')
