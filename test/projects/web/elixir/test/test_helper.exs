# Messages come when their senders run, on a busy machine later than the 100 ms that are waited for otherwise.
ExUnit.start(max_cases: 8, assert_receive_timeout: 30_000, timeout: :infinity)
