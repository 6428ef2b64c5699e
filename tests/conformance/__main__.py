from tests.conformance.runner import main

main()
