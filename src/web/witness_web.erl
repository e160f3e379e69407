-module(witness_web).
-moduledoc """
The report of a run: one HTML file that opens anywhere, without a server or a network.

A report is opened before the run, so that a run does not start if its report cannot be written. It gets each verdict when
it is reached, and is written when the run has ended. It shows the violations, and takes a bounded amount of memory, however
many they are:

- Violations are grouped by property and *place*: the action of the specification that decided, and the function that the
  process was spawned with. Every violation is counted in its group. There are at most 1,000 groups; violations beyond
  that are counted with others of their property.
- The first 50 of a group have their explanation while all that is kept takes less than 6 MB.
- The others have their process and the deciding event, while all that is kept takes less than 10 MB.
- The first 3 of a group have their explanation in any case, up to 14 MB: many violations of one kind must not hide
  that there is another.

The page says how many violations were left out.

```erlang
1> {ok, Report} = witness_web:open("report", #{specs => ["calc.hml"]}).
2> ok = witness_web:add(Verdict, Report).
3> {ok, "report/report.html"} = witness_web:write(Result, Report).
```

The table of a report belongs to the process that has opened the report, and is deleted when that process ends.
""".

-export([open/2, add/2, write/2]).

-export_type([report/0, result/0]).

-doc "A report that is open. Any process may add to it, one at a time.".
-type report() :: #{file := file:filename(), page := witness_web_page:page(), table := ets:table(),
                      sources := [witness_web_data:json()]}.

-doc """
How the run has ended. `code` is the exit code, `sentence` is the result in words, `facts` are the rows of the summary, and
`subject` is the command or the file.
""".
-type result() :: #{code := 0..3, sentence := unicode:chardata(),
                    facts := [{Label :: unicode:chardata(), unicode:chardata()}],
                    subject := unicode:chardata(), summary := witness:summary()}.

-define(FILE_NAME, "report.html").
-define(MAX_GROUPS, 1000).
%% How many violations of each group are kept in which way, while all that is kept takes less than this number of bytes.
-define(MAX_EXPLAINED, 50).
-define(EXPLAINED_BYTES, 6_000_000).
-define(BRIEF_BYTES, 10_000_000).
-define(ALWAYS_EXPLAINED, 3).
-define(MAX_BYTES, 14_000_000).

-doc """
Opens a report in a folder, which is made if it does not exist. `specs` are the files of the specifications, which are
read now; `page` is a file that replaces the built page (`assets/build`). An error is text for
people.
""".
-spec open(Folder :: file:filename(), #{specs := [file:name_all()], page => file:filename()}) ->
    {ok, report()} | {error, unicode:chardata()}.
open(Folder, #{specs := Specs} = Options) ->
    File = filename:join(Folder, ?FILE_NAME),
    maybe
        {ok, Page} ?= witness_web_page:read(maps:get(page, Options, built)),
        ok ?= witness_web_page:check_writable(File),
        {ok, #{file => File, page => Page, table => ets:new(?MODULE, [public, ordered_set]),
               sources => [witness_web_data:source(Spec) || Spec <- Specs]}}
    end.

-doc "Adds a verdict. Verdicts other than violations are in the summary only.".
-spec add(witness:verdict(), report()) -> ok.
add(#{verdict := no} = Verdict, #{table := Table}) ->
    {Order, Count} = count_in_group(group(Verdict, Table), Verdict, Table),
    Bytes = ets:lookup_element(Table, bytes, 2, 0),
    case encode_verdict(Count, Bytes, Verdict) of
        none -> ok;
        Json ->
            true = ets:insert(Table, [{{kept, Order, Count}, Json}, {bytes, Bytes + byte_size(Json)}]),
            ok
    end;
add(#{}, #{}) -> ok.

group(Verdict, Table) ->
    Group = witness_web_data:group(Verdict),
    case ets:member(Table, {group, Group}) orelse ets:lookup_element(Table, groups, 2, 0) < ?MAX_GROUPS of
        true -> Group;
        false -> Group#{place := others}
    end.

count_in_group(Group, Verdict, Table) ->
    case ets:lookup(Table, {group, Group}) of
        [{Key, Order, Count, Place}] ->
            true = ets:insert(Table, {Key, Order, Count + 1, Place}),
            {Order, Count + 1};
        [] ->
            Order = ets:update_counter(Table, groups, 1, {groups, 0}),
            true = ets:insert(Table, {{group, Group}, Order, 1, witness_web_data:place(Group, Verdict)}),
            {Order, 1}
    end.

encode_verdict(Count, Bytes, Verdict)
  when Count =< ?ALWAYS_EXPLAINED, Bytes < ?MAX_BYTES; Count =< ?MAX_EXPLAINED, Bytes < ?EXPLAINED_BYTES ->
    witness_web_data:encode(witness_web_data:explained_violation(Verdict));
encode_verdict(_, Bytes, Verdict) when Bytes < ?BRIEF_BYTES -> witness_web_data:encode(witness_web_data:brief_violation(Verdict));
encode_verdict(_, _, _) -> none.

-doc "Writes the report, and replaces an existing one. Returns its file. An error is text for people.".
-spec write(result(), report()) -> {ok, file:filename()} | {error, unicode:chardata()}.
write(Result, #{file := File, page := Page, table := Table, sources := Sources}) ->
    Groups = lists:keysort(1, [{Order, Group, Count, Place}
                               || [Group, Order, Count, Place] <- ets:match(Table, {{group, '$1'}, '$2', '$3', '$4'})]),
    Properties = lists:uniq([maps:remove(place, Group) || {_, Group, _, _} <- Groups]),
    Data = (witness_web_data:result(Result))#{
        sources => Sources,
        properties => [property_data(Property, Groups, Table) || Property <- Properties]},
    maybe
        ok ?= witness_web_page:write(File, witness_web_data:encode(Data), Page),
        {ok, File}
    end.

property_data(Property, Groups, Table) ->
    Own = [Group || {_, Key, _, _} = Group <- Groups, maps:remove(place, Key) =:= Property],
    (witness_web_data:property(Property))#{
        count => lists:sum([Count || {_, _, Count, _} <- Own]),
        places => [Place#{count => Count, violations => violations(Order, Table)} || {Order, _, Count, Place} <- Own]}.

violations(Order, Table) ->
    [{encoded, Json} || Json <- ets:select(Table, [{{{kept, Order, '_'}, '$1'}, [], ['$1']}])].
