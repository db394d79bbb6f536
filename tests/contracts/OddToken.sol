// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

// An EIP-3009 token with the faults that USDC cannot show; each is switched on when it is made.
contract OddToken {
    uint256 constant USED_IS_QUIET = 1; // a used nonce does nothing, and does not revert
    uint256 constant SAYS_FALSE = 2;    // nothing moves, and the call returns false
    uint256 constant NO_TRANSFER_LOG = 4;
    uint256 constant TAKES_A_FEE = 8;   // one unit less arrives, and the log says so

    bytes32 constant TRANSFER_TYPEHASH = keccak256(
        "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)");
    bytes32 constant CANCEL_TYPEHASH = keccak256("CancelAuthorization(address authorizer,bytes32 nonce)");

    string public name;
    string public version;
    string public constant symbol = "ODD";
    uint8 public immutable decimals;
    uint256 public immutable faults;
    bytes32 public immutable DOMAIN_SEPARATOR;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(bytes32 => bool)) public authorizationState;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);
    event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce);

    constructor(string memory name_, string memory version_, uint8 decimals_, uint256 faults_) {
        name = name_;
        version = version_;
        decimals = decimals_;
        faults = faults_;
        DOMAIN_SEPARATOR = keccak256(abi.encode(
            keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
            keccak256(bytes(name_)), keccak256(bytes(version_)), block.chainid, address(this)));
    }

    function mint(address to, uint256 value) external {
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }

    function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore,
        bytes32 nonce, uint8 v, bytes32 r, bytes32 s) external returns (bool) {
        return _transfer(from, to, value, validAfter, validBefore, nonce, v, r, s);
    }

    function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore,
        bytes32 nonce, bytes memory signature) external returns (bool) {
        (uint8 v, bytes32 r, bytes32 s) = _split(signature);
        return _transfer(from, to, value, validAfter, validBefore, nonce, v, r, s);
    }

    function cancelAuthorization(address authorizer, bytes32 nonce, bytes memory signature) external {
        (uint8 v, bytes32 r, bytes32 s) = _split(signature);
        _check(authorizer, keccak256(abi.encode(CANCEL_TYPEHASH, authorizer, nonce)), v, r, s);
        require(!authorizationState[authorizer][nonce], "OddToken: used");
        authorizationState[authorizer][nonce] = true;
        emit AuthorizationCanceled(authorizer, nonce);
    }

    function _transfer(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore,
        bytes32 nonce, uint8 v, bytes32 r, bytes32 s) private returns (bool) {
        if (_has(SAYS_FALSE))
            return false;
        require(block.timestamp > validAfter, "OddToken: not yet valid");
        require(block.timestamp < validBefore, "OddToken: expired");
        if (authorizationState[from][nonce]) {
            require(_has(USED_IS_QUIET), "OddToken: used");
            return true;
        }
        _check(from, keccak256(abi.encode(TRANSFER_TYPEHASH, from, to, value, validAfter, validBefore, nonce)), v, r, s);
        authorizationState[from][nonce] = true;
        emit AuthorizationUsed(from, nonce);
        uint256 arrives = _has(TAKES_A_FEE) ? value - 1 : value;
        require(balanceOf[from] >= value, "OddToken: balance");
        balanceOf[from] -= value;
        balanceOf[to] += arrives;
        if (!_has(NO_TRANSFER_LOG))
            emit Transfer(from, to, arrives);
        return true;
    }

    function _check(address signer, bytes32 structHash, uint8 v, bytes32 r, bytes32 s) private view {
        address who = ecrecover(keccak256(abi.encodePacked("\x19\x01", DOMAIN_SEPARATOR, structHash)), v, r, s);
        require(who != address(0) && who == signer, "OddToken: signature");
    }

    function _split(bytes memory signature) private pure returns (uint8 v, bytes32 r, bytes32 s) {
        require(signature.length == 65, "OddToken: signature length");
        assembly ("memory-safe") {
            r := mload(add(signature, 32))
            s := mload(add(signature, 64))
            v := byte(0, mload(add(signature, 96)))
        }
    }

    function _has(uint256 fault) private view returns (bool) {
        return faults & fault != 0;
    }
}
