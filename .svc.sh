ERRAND_BUILD=$PWD/build PYTHONPATH=$PWD/tests/lib /usr/bin/python3 tests/session/test-service.py 2>&1 | cut -c1-260
