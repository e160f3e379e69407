-module(witness_spec_names).
-moduledoc """
Bounds the atoms that reading a source can make, without making any.

Scanning turns every name (atom or variable) into an atom, and atoms are never freed. So the names are counted
first, on the characters. The count is an upper bound that does not depend on where comments, strings and quoted atoms
begin and end: whatever the scanner reads as a name is

- the end of a maximal run of name characters, that begins after at most a `$`, `\` or digits: runs are counted
  together with the preceding character; or
- the text between a quote and the next one that no backslash escapes: every quote counts as an opening one.

Elixir's names of modules consist of several names and become one more atom each, so these are counted, too.
""".

-export([has_more_names/2, has_more_aliases/2]).

-doc "Whether the source may have more than `Limit` distinct names. Takes time in proportion to the source.".
-spec has_more_names(unicode:charlist() | [char()], Limit :: non_neg_integer()) -> boolean().
has_more_names(Chars, Limit) ->
    runs(Chars, none, #{}, Limit) orelse quoted(Chars, Limit).

runs(_, _, Seen, Limit) when map_size(Seen) > Limit -> true;
runs([], _, _, _) -> false;
runs([C | Rest] = Chars, Before, Seen, Limit) ->
    case name_char(C) of
        true ->
            {Run, After} = lists:splitwith(fun name_char/1, Chars),
            runs(After, none, Seen#{{Before, Run} => []}, Limit);
        false when C =:= $$; C =:= $\\ ->
            runs(Rest, C, Seen, Limit);
        false ->
            runs(Rest, none, Seen, Limit)
    end.

%% The characters that the scanner accepts in a name: ASCII and Latin-1 letters, digits, `_` and `@`.
name_char(C) when C >= $a, C =< $z; C >= $A, C =< $Z; C >= $0, C =< $9; C =:= $_; C =:= $@ -> true;
name_char(C) -> C >= 16#C0 andalso C =< 16#FF andalso C =/= 16#D7 andalso C =/= 16#F7.

%% An atom has at most 255 characters, and an escape writes one of them with at most `\x{10FFFF}`, 10 characters.
-define(MAX_ATOM_CHARACTERS, 2550).

quoted(Chars, Limit) ->
    quoted(lists:reverse(Chars), none, none, none, #{}, Limit).

%% From right to left. An end is the text from a place up to the quote that closes an open atom, as its hash
%% and length; `none' if no quote closes it. It follows from the ends one and two places further (`End1`, `End2`),
%% since a backslash includes its successor. `C1` is the character one place further.
quoted(_, _, _, _, Seen, Limit) when map_size(Seen) > Limit -> true;
quoted([], _, _, _, _, _) -> false;
quoted([$' | Left], _, End1, _, Seen, Limit) -> quoted(Left, $', {0, 0}, End1, note_seen(End1, Seen), Limit);
quoted([$\\ | Left], C1, End1, End2, Seen, Limit) ->
    quoted(Left, $\\, extend($\\, extend(C1, End2)), End1, Seen, Limit);
quoted([C | Left], _, End1, _, Seen, Limit) -> quoted(Left, C, extend(C, End1), End1, Seen, Limit).

extend(C, {Hash, Length}) when is_integer(C), Length < ?MAX_ATOM_CHARACTERS ->
    {erlang:phash2({C, Hash}, 1 bsl 32), Length + 1};
extend(_, _) ->
    none.

note_seen(none, Seen) -> Seen;
note_seen(End, Seen) -> Seen#{End => []}.

-doc "Whether more than `Limit` distinct names in these tokens may be joined by dots, as in `My.Module`.".
-spec has_more_aliases([witness_spec_scan:token()], Limit :: non_neg_integer()) -> boolean().
has_more_aliases(Tokens, Limit) -> aliases(Tokens, #{}, Limit).

aliases(_, Seen, Limit) when map_size(Seen) > Limit -> true;
aliases([{var, _, First}, {'.', _}, {var, _, _} = Second | Rest], Seen, Limit) ->
    {Names, After} = alias([Second | Rest], [First]),
    aliases(After, Seen#{Names => []}, Limit);
aliases([_ | Rest], Seen, Limit) -> aliases(Rest, Seen, Limit);
aliases([], _, _) -> false.

alias([{var, _, Name}, {'.', _} | Rest], Names) -> alias(Rest, [Name | Names]);
alias([{var, _, Name} | Rest], Names) -> {[Name | Names], Rest};
alias(Rest, Names) -> {Names, Rest}.
