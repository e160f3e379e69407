-module(witness_cli_mermaid).
-moduledoc "Sequences of messages in the language of Mermaid. Pure.".

-export([heading/0, participant/2, arrow/3]).

-doc "The first line.".
-spec heading() -> unicode:chardata().
heading() -> ~"sequenceDiagram\n".

-doc "A participant, by its number (0 is outside), with a name.".
-spec participant(non_neg_integer(), unicode:chardata()) -> unicode:chardata().
participant(0, _) -> ~"    participant P0 as outside\n";
participant(Id, Name) -> [~"    participant ", lane(Id), ~" as ", label(Name), $\n].

-doc "A message between two participants.".
-spec arrow(non_neg_integer(), non_neg_integer(), unicode:chardata()) -> unicode:chardata().
arrow(From, To, Text) -> [~"    ", lane(From), ~"->>", lane(To), ~": ", label(Text), $\n].

lane(Id) -> [$P, integer_to_binary(Id)].

%% A label must not contain what ends it (a semicolon, the word `end') or what starts an entity.
label(Text) -> << <<(plain(Char))/binary>> || <<Char/utf8>> <= broken(witness_text:clean(Text)) >>.

broken(Text) -> binary:replace(Text, ~"end", ~"e\x{1}nd", [global]).

plain(1) -> ~"#8203;";
plain(Char) when Char =:= $#; Char =:= $;; Char =:= $<; Char =:= $>; Char =:= $&; Char =:= $%; Char =:= $\\ ->
    <<"#", (integer_to_binary(Char))/binary, ";">>;
plain(Char) -> <<Char/utf8>>.
