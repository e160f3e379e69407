-module(witness_verdicts).
-moduledoc """
The verdicts of a recording that was monitored while it was made. They are in the file `verdicts` of its folder, so that
the verdicts of a replay can be compared with them.

The file is JSON: `witness_verdicts` (the version, 1), `specs` (the files, as they were given), `monitors` (as on the
command line), `signatures` (likewise, none if it is missing), `instrument` (`outline`, also if it is missing, or `central`), `whole`
(whether all verdicts are there), and `verdicts`, each with `process`, `spec` (the name of its
file without folders, and the line), `name`, `slice` and `verdict`. The file is data: reading it creates no atoms and runs
no code.

The decided verdicts of each property on each process or slice are compared. Centrally the process is left out. There it may be the one
that has decided a property over several processes, and events that do not depend on each other may have another order in a replay. A verdict that was undecided during the recording
agrees with any verdict.
""".

-include_lib("kernel/include/file.hrl").

-export([new/1, add/2, write/2, read/1, differences/2]).

-export_type([verdicts/0, stored/0, difference/0]).

-doc "Verdicts, with their specifications and monitors.".
-type verdicts() :: #{specs := [binary()], monitors := [binary()], signatures := [binary()], instrument := outline | central,
                      count := non_neg_integer(),
                      found := [found()]}.

-doc "The content of a file.".
-type stored() :: #{specs := [binary()], monitors := [binary()], signatures := [binary()], instrument := outline | central,
                    verdicts := verdicts()}.

-type found() :: {key(), witness_monitor:verdict()}.

-type key() :: {Process :: binary(), Spec :: binary(), Name :: binary(), Slice :: binary()}.

-doc "Verdicts of a property that differ.".
-type difference() :: #{process := binary(), spec := binary(), name := binary(), slice := binary(),
                        recorded := [witness_monitor:verdict()],
                        replayed := [witness_monitor:verdict()]}.

%% Limits: verdicts that are kept, and bytes of the file.
-define(MAX_VERDICTS, 100_000).
-define(MAX_BYTES, 100_000_000).
-define(TERM_CHARS, 1000).

-doc "No verdicts yet, for a run with these options (`witness:start/1`).".
-spec new(map()) -> verdicts().
new(Options) ->
    #{specs => [text(File) || File <- maps:get(specs, Options, []), not is_map(File)],
      monitors => [format_monitor(Monitor) || Monitor <- maps:get(monitors, Options, [])],
      signatures => [text(witness_event_wrapper:format(Row)) || Row <- maps:get(signatures, Options, [])],
      instrument => maps:get(instrument, Options, outline), count => 0, found => []}.

format_monitor({{M, F, A}, {Module, Argument}}) ->
    Arity = case A of '_' -> ~"_"; _ -> integer_to_binary(A) end,
    Given = case Argument of [] -> []; _ -> io_lib:format("(~tw)", [Argument]) end,
    text([format_pattern(M), $:, format_pattern(F), $/, Arity, $=, io_lib:format("~tw", [Module]), Given]).

format_pattern('_') -> "_";
format_pattern(Atom) -> io_lib:format("~tw", [Atom]).

-doc "Adds a verdict.".
-spec add(witness:verdict(), verdicts()) -> verdicts().
add(#{verdict := Verdict} = V, #{count := Count, found := Found, instrument := Instrument} = Verdicts)
  when Count < ?MAX_VERDICTS ->
    Verdicts#{count := Count + 1, found := [{key(V, Instrument), Verdict} | Found]};
add(_, #{count := Count} = Verdicts) -> Verdicts#{count := Count + 1}.

key(#{process := Process, spec := Spec, name := Name, slice := Slice}, Instrument) ->
    {case Process of _ when Instrument =:= central; Process =:= undefined -> ~""; _ -> witness_event:format_proc(Process) end,
     text(filename:basename(Spec)),
     case Name of undefined -> ~""; _ -> Name end,
     case Slice of
         undefined -> ~"";
         _ -> text(lists:join(~", ", [[Of, ~" = ", witness_event:format_term(Value, ?TERM_CHARS)] || {Of, Value} <- Slice]))
     end}.

text(Chars) ->
    case unicode:characters_to_binary(Chars) of
        Text when is_binary(Text) -> Text;
        _ -> witness_event:format_term(Chars, ?TERM_CHARS)
    end.

-doc "Writes the file of a recording.".
-spec write(file:filename_all(), verdicts()) -> ok | {error, file:posix() | badarg | terminated | system_limit}.
write(Dir, Verdicts) ->
    #{specs := Specs, monitors := Monitors, signatures := Signatures, instrument := Instrument, count := Count, found := Found} =
        Verdicts,
    Text = [json:encode(#{
        witness_verdicts => 1, specs => Specs, monitors => Monitors, signatures => Signatures, instrument => Instrument,
        whole => Count =< ?MAX_VERDICTS,
        verdicts => [#{process => Process, spec => Spec, name => Name, slice => Slice, verdict => Verdict}
                     || {{Process, Spec, Name, Slice}, Verdict} <- lists:reverse(Found)]}), $\n],
    %% Values of slices are contents of messages.
    maybe
        ok ?= file:write_file(file_name(Dir), ~""),
        ok ?= file:change_mode(file_name(Dir), 8#600),
        ok ?= file:write_file(file_name(Dir), Text)
    else
        %% A partial file would have other verdicts.
        {error, _} = Error ->
            _ = file:delete(file_name(Dir)),
            Error
    end.

file_name(Dir) -> filename:join(Dir, "verdicts").

-doc "Reads the file; `none` if there is none. An error is text for people.".
-spec read(file:filename_all()) -> {ok, stored()} | none | {error, unicode:chardata()}.
read(Dir) ->
    maybe
        {ok, #file_info{type = Type, size = Size}} ?= file:read_file_info(file_name(Dir), [raw]),
        %% A device or a pipe would have no end.
        true ?= Type =:= regular orelse {error, ~"it is no regular file"},
        true ?= Size =< ?MAX_BYTES orelse {error, ~"it is too large"},
        {ok, Text} ?= file:read_file(file_name(Dir)),
        {ok, Decoded} ?= decode(Text),
        {ok, Stored} ?= parse(Decoded),
        {ok, Stored}
    else
        {error, enoent} -> none;
        {error, Reason} when is_atom(Reason) -> {error, [text(file_name(Dir)), ~": ", file:format_error(Reason)]};
        {error, What} -> {error, [text(file_name(Dir)), ~": ", What]}
    end.

decode(Text) ->
    try {ok, json:decode(Text)} catch error:_ -> {error, ~"it is no JSON"} end.

parse(#{~"witness_verdicts" := 1, ~"whole" := true, ~"specs" := Specs, ~"monitors" := Monitors, ~"verdicts" := Verdicts} = Stored)
  when is_list(Specs), is_list(Monitors), is_list(Verdicts) ->
    Found = [parse_verdict(Verdict) || Verdict <- Verdicts],
    Instrument = case maps:get(~"instrument", Stored, ~"outline") of ~"outline" -> outline; ~"central" -> central; _ -> wrong end,
    Signatures = maps:get(~"signatures", Stored, []),
    case is_list(Signatures) andalso lists:all(fun is_binary/1, Specs ++ Monitors ++ Signatures)
        andalso not lists:member(wrong, [Instrument | Found]) of
        true ->
            Run = #{specs => Specs, monitors => Monitors, signatures => Signatures, instrument => Instrument},
            {ok, Run#{verdicts => Run#{count => length(Found), found => lists:reverse(Found)}}};
        false -> {error, ~"it does not hold verdicts"}
    end;
parse(#{~"witness_verdicts" := 1, ~"whole" := false}) ->
    {error, [~"there were more than ", integer_to_binary(?MAX_VERDICTS), ~" verdicts, not all of which are there"]};
parse(#{~"witness_verdicts" := Version}) when is_integer(Version) ->
    {error, [~"it has the version ", integer_to_binary(Version), ~", and 1 is expected"]};
parse(_) -> {error, ~"it does not hold verdicts"}.

parse_verdict(#{~"process" := Process, ~"spec" := Spec, ~"name" := Name, ~"slice" := Slice, ~"verdict" := Verdict})
  when is_binary(Process), is_binary(Spec), is_binary(Name), is_binary(Slice) ->
    case Verdict of
        ~"no" -> {{Process, Spec, Name, Slice}, no};
        ~"yes" -> {{Process, Spec, Name, Slice}, yes};
        ~"inconclusive" -> {{Process, Spec, Name, Slice}, inconclusive};
        _ -> wrong
    end;
parse_verdict(_) -> wrong.

-doc "The verdicts that differ in a replay.".
-spec differences(Recorded :: verdicts(), Replayed :: verdicts()) -> [difference()].
differences(#{found := Recorded}, #{found := Replayed}) ->
    Before = by_key(Recorded),
    Now = by_key(Replayed),
    [#{process => Process, spec => Spec, name => Name, slice => Slice, recorded => Was, replayed => Is}
     || {Process, Spec, Name, Slice} = Key <- lists:usort(maps:keys(Before) ++ maps:keys(Now)),
        Was <- [lists:sort(maps:get(Key, Before, []))], Is <- [lists:sort(maps:get(Key, Now, []))],
        Was =/= Is, not lists:member(inconclusive, Was)].

by_key(Found) -> maps:groups_from_list(fun({Key, _}) -> Key end, fun({_, Verdict}) -> Verdict end, Found).
