-module(witness_search_identity).
-moduledoc """
The pids and references of a controlled program. *Invariant:* they are a function of the schedule, so they do not depend on what else
this VM has done. The VM makes none of them: their pids have a serial number that it reaches after 2^28 processes, and their
references are numbers that it does not use.
""".

-export([pid/1, reference/1, alias/2, owner/1]).

%% Kinds of references are told apart by a bit of their second word; one that identifies a process has two words more, for its pid.
-define(PID_REFERENCE, 16#10000).
-define(PID_WORDS, 5).
-define(SERIAL, 1).
-define(PID_BITS, 28).
-define(PID_TAG, 3).
-define(FIRST_WORD_BITS, 18).

-doc "The pid of a process.".
-spec pid(pos_integer()) -> pid().
pid(Id) -> list_to_pid("<0." ++ integer_to_list(Id) ++ "." ++ integer_to_list(?SERIAL) ++ ">").

-doc "The reference with this number.".
-spec reference(pos_integer()) -> reference().
reference(Number) -> make([low(Number), 0, high(Number)]).

-doc "The same, as an alias of this process.".
-spec alias(pos_integer(), Id :: pos_integer()) -> reference().
alias(Number, Id) ->
    %% The pid as a word of the VM.
    Pid = (Id bor (?SERIAL bsl ?PID_BITS)) bsl 4 bor ?PID_TAG,
    make([low(Number), ?PID_REFERENCE, high(Number), Pid band 16#ffffffff, Pid bsr 32]).

-doc "The process that has made an alias; `none` for another reference.".
-spec owner(reference()) -> {ok, pid()} | none.
owner(Reference) ->
    case term_to_binary(Reference) of
        <<131, 90, ?PID_WORDS:16, External/binary>> ->
            <<_:32, Low:32, High:32>> = binary:part(External, byte_size(External), -12),
            {ok, pid(((High bsl 32 bor Low) bsr 4) band (1 bsl ?PID_BITS - 1))};
        _ -> none
    end.

low(Number) -> Number band (1 bsl ?FIRST_WORD_BITS - 1).

high(Number) -> Number bsr ?FIRST_WORD_BITS.

make(Words) ->
    %% The node and its creation are those of this VM.
    Own = term_to_binary(self()),
    Bytes = byte_size(Own) - 14,
    <<131, 88, Node:Bytes/binary, _:64, Creation:4/binary>> = Own,
    Numbers = << <<Word:32>> || Word <- Words >>,
    binary_to_term(<<131, 90, (length(Words)):16, Node/binary, Creation/binary, Numbers/binary>>).
