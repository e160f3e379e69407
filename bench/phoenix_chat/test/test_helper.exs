ExUnit.start(max_cases: 8)
